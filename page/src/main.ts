import "./style.css";
document.title = "raybox";
